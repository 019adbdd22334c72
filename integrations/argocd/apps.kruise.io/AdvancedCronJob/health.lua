-- Healthy: runs start as scheduled, whether or not they succeed. Progressing: a run is active. Suspended: paused.

-- Return the value under these keys; nil if a part of the path is absent, null or of another type.
local function at(value, ...)
  for _, key in ipairs({...}) do
    if type(value) ~= "table" then return nil end
    value = value[key]
  end
  return value
end

local function entries(value)
  if type(value) == "table" then return value end
  return {}
end

local function text(value, default)
  if type(value) == "string" and value ~= "" then return value end
  return default
end

local function healthy(message) return {status = "Healthy", message = message} end
local function progressing(message) return {status = "Progressing", message = message} end
local function suspended(message) return {status = "Suspended", message = message} end
if at(obj, "metadata", "deletionTimestamp") then return progressing("Pending deletion") end

if at(obj, "spec", "paused") == true then return suspended("Schedule is paused") end
local active, last = #entries(at(obj, "status", "active")), text(at(obj, "status", "lastScheduleTime"))
if not last then return healthy("Not yet scheduled") end
local runs = "Last scheduled at " .. last .. ", " .. active .. " active"
if active > 0 then return progressing(runs) end
return healthy(runs)
