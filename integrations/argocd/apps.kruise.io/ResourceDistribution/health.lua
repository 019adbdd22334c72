-- Healthy: the resource is in all namespaces. Degraded: it could not be written to some.

-- Return the value under these keys; nil if a part of the path is absent, null or of another type.
local function at(value, ...)
  for _, key in ipairs({...}) do
    if type(value) ~= "table" then return nil end
    value = value[key]
  end
  return value
end

local function number(value)
  if type(value) == "number" then return value end
  return 0
end

local function count(...) return number(at(obj, "status", ...)) end

local function entries(value)
  if type(value) == "table" then return value end
  return {}
end

local function text(value, default)
  if type(value) == "string" and value ~= "" then return value end
  return default
end

local function observed()
  return type(at(obj, "status")) == "table" and count("observedGeneration") >= number(at(obj, "metadata", "generation"))
end

local function healthy(message) return {status = "Healthy", message = message} end
local function progressing(message) return {status = "Progressing", message = message} end
local function degraded(message) return {status = "Degraded", message = message} end
local function waiting() return progressing("Waiting for the latest spec to be observed") end

if at(obj, "metadata", "deletionTimestamp") then return progressing("Pending deletion") end

if not observed() then return waiting() end
local desired, succeeded, failed = count("desired"), count("succeeded"), count("failed")
local tally = succeeded .. " of " .. desired .. " namespaces have the resource, " .. failed .. " failed"
for _, one in ipairs(entries(at(obj, "status", "conditions"))) do
  if at(one, "status") == "True" then return degraded(text(at(one, "reason"), "Failed") .. " (" .. tally .. ")") end
end
if failed > 0 then return degraded(tally) end
return succeeded < desired and progressing(tally) or healthy(tally)
