#!/bin/sh
# Prints the sum of its arguments.
echo $(($1 + $1))
