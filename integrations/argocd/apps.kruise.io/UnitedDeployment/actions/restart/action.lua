-- Return the table under these keys; create it if it is missing.
local function place(value, ...)
  for _, key in ipairs({...}) do
    if type(value[key]) ~= "table" then value[key] = {} end
    value = value[key]
  end
  return value
end

local template
for _, child in pairs(place(obj, "spec", "template")) do
  if type(child) == "table" then template = place(child, "spec", "template") end
end
if template then
  local annotations = place(template, "metadata", "annotations")
  annotations["kubectl.kubernetes.io/restartedAt"] = os.date("!%Y-%m-%dT%XZ")
end
return obj
