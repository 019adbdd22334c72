-- Return the table under these keys; create it if it is missing.
local function place(value, ...)
  for _, key in ipairs({...}) do
    if type(value[key]) ~= "table" then value[key] = {} end
    value = value[key]
  end
  return value
end

local strategy = place(obj, "spec", "updateStrategy", "manualUpdate", "partitions")
local template
for _, child in pairs(place(obj, "spec", "template")) do
  if type(child) == "table" then template = place(child, "spec", "template") end
end
local held = false
for _, partition in pairs(strategy) do held = held or partition ~= 0 end
return {
  promote = {disabled = not held},
  restart = {disabled = template == nil},
}
