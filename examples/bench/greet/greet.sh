#!/bin/sh
# Prints a greeting.
echo "hello $1"
