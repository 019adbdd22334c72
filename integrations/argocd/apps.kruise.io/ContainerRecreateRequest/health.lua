-- Healthy: all containers were recreated. Degraded: completed, and some were not.

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
local function degraded(message) return {status = "Degraded", message = message} end
local function waiting() return progressing("Waiting for the latest spec to be observed") end

if at(obj, "metadata", "deletionTimestamp") then return progressing("Pending deletion") end

local phase = at(obj, "status", "phase")
local total, recreated, failure = #entries(at(obj, "spec", "containers")), 0, nil
for _, one in ipairs(entries(at(obj, "status", "containerRecreateStates"))) do
  if at(one, "phase") == "Succeeded" then recreated = recreated + 1 end
  if at(one, "phase") == "Failed" then failure = failure or text(at(one, "message"), "A container failed") end
end
local tally = recreated .. " of " .. total .. " containers recreated"
failure = text(at(obj, "status", "message"), failure)
if phase == "Completed" and recreated >= total and not failure then return healthy(tally) end
if phase == "Completed" then return degraded(failure and failure .. " (" .. tally .. ")" or tally) end
if type(phase) ~= "string" or phase == "" then return waiting() end
return progressing(tally)
