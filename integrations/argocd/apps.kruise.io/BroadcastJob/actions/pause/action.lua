-- Return the table under these keys; create it if it is missing.
local function place(value, ...)
  for _, key in ipairs({...}) do
    if type(value[key]) ~= "table" then value[key] = {} end
    value = value[key]
  end
  return value
end

local strategy = place(obj, "spec")
strategy.paused = true
return obj
