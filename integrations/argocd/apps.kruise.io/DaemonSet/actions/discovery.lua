-- Return the table under these keys; create it if it is missing.
local function place(value, ...)
  for _, key in ipairs({...}) do
    if type(value[key]) ~= "table" then value[key] = {} end
    value = value[key]
  end
  return value
end

local strategy = place(obj, "spec", "updateStrategy", "rollingUpdate")
local kind = place(obj, "spec", "updateStrategy").type
local rolls = kind ~= "OnDelete" and kind ~= "NotUpdate"
local partition = strategy.partition or 0
local held = partition ~= 0 and partition ~= "0%"
return {
  pause = {disabled = not rolls or strategy.paused == true},
  resume = {disabled = not rolls or strategy.paused ~= true},
  promote = {disabled = not rolls or not held},
  restart = {disabled = false},
}
