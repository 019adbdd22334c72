-- Healthy: each probe has a result, good or bad.

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

local function healthy(message) return {status = "Healthy", message = message} end
local function progressing(message) return {status = "Progressing", message = message} end
if at(obj, "metadata", "deletionTimestamp") then return progressing("Pending deletion") end

local probes, results = 0, 0
for _, pod in ipairs(entries(at(obj, "spec", "podProbes"))) do probes = probes + #entries(at(pod, "probes")) end
for _, pod in ipairs(entries(at(obj, "status", "podProbeStatuses"))) do
  results = results + #entries(at(pod, "probeStates"))
end
local tally = results .. " of " .. probes .. " probes have a result"
return results < probes and progressing(tally) or healthy(tally)
