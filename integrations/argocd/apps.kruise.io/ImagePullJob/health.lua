-- Healthy: all nodes have the image. Degraded: the job ended without that, or all nodes reported and some failed.

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

local function healthy(message) return {status = "Healthy", message = message} end
local function progressing(message) return {status = "Progressing", message = message} end
local function degraded(message) return {status = "Degraded", message = message} end
local function waiting() return progressing("Waiting for the latest spec to be observed") end

if at(obj, "metadata", "deletionTimestamp") then return progressing("Pending deletion") end

local desired, succeeded, failed = count("desired"), count("succeeded"), count("failed")
local tally = succeeded .. " of " .. desired .. " nodes have the image, " .. failed .. " failed"
local ended = at(obj, "status", "completionTime") ~= nil
if not ended and at(obj, "status", "startTime") == nil then return waiting() end
if ended or (desired > 0 and succeeded + failed >= desired) then
  return (failed > 0 or succeeded < desired) and degraded(tally) or healthy(tally)
end
return progressing(tally)
