-- Return the table under these keys; create it if it is missing.
local function place(value, ...)
  for _, key in ipairs({...}) do
    if type(value[key]) ~= "table" then value[key] = {} end
    value = value[key]
  end
  return value
end

local strategy = place(obj, "spec")
local status = place(obj, "status")
local ended = status.phase == "completed" or status.phase == "failed"
return {
  pause = {disabled = ended or strategy.paused == true},
  resume = {disabled = ended or strategy.paused ~= true},
}
