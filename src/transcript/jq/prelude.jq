# Replacements for definitions in which jaq differs from jq: filters are written for jq.

def join($separator):
  reduce .[] as $item (null;
    (if . == null then "" else . + $separator end)
    + ($item | if . == null then "" elif isstring then . elif isnumber or isboolean then tojson
               else error("cannot join an array or an object") end)
  ) | if . == null then "" end;

def from_entries:
  reduce .[] as $entry ({};
    ($entry | if isobject then
        if has("key") then .key elif has("k") then .k elif has("name") then .name
        elif has("Name") then .Name elif has("K") then .K elif has("Key") then .Key else null end
      else error("cannot make an object of this entry") end
      | if isstring then . elif . == null then "null" else tojson end) as $key
    | ($entry | if has("value") then .value elif has("v") then .v elif has("Value") then .Value
                elif has("V") then .V else null end) as $value
    | . + { ($key): $value });
def with_entries(f): to_entries | map(f) | from_entries;

def IN(source): any(source == .; .);
def IN(source; others): any(source == others; .);
def INDEX(source; key): reduce source as $row ({}; . + { ($row | key | tostring): $row });
def INDEX(key): INDEX(.[]; key);
def leaf_paths: paths(scalars);
def todate(format): strftime(format);
def ascii: [.] | implode;

def @csv:
  [.[] | if isstring then "\"" + gsub("\""; "\"\"") + "\""
         elif isnumber or isboolean then tojson elif . == null then "" else error("not valid in a csv row") end]
  | join(",");
def @tsv:
  [.[] | if isstring then gsub("\\\\"; "\\\\") | gsub("\t"; "\\t") | gsub("\n"; "\\n") | gsub("\r"; "\\r")
         elif isnumber or isboolean then tojson elif . == null then "" else error("not valid in a tsv row") end]
  | join("\t");
