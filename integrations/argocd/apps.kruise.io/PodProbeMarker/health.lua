-- Healthy: the spec is observed, and the pods that it matches are probed.

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

local function observed()
  return type(at(obj, "status")) == "table" and count("observedGeneration") >= number(at(obj, "metadata", "generation"))
end

local function healthy(message) return {status = "Healthy", message = message} end
local function progressing(message) return {status = "Progressing", message = message} end
local function waiting() return progressing("Waiting for the latest spec to be observed") end

if at(obj, "metadata", "deletionTimestamp") then return progressing("Pending deletion") end

if not observed() then return waiting() end
return healthy(count("matchedPods") .. " pods are probed")
