-- Healthy: all images of the spec are on the node. Degraded: all have been tried, and some failed.

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

local function healthy(message) return {status = "Healthy", message = message} end
local function progressing(message) return {status = "Progressing", message = message} end
local function degraded(message) return {status = "Degraded", message = message} end
if at(obj, "metadata", "deletionTimestamp") then return progressing("Pending deletion") end

local desired, succeeded, failed = 0, count("succeeded"), count("failed")
for _, image in pairs(entries(at(obj, "spec", "images"))) do desired = desired + #entries(at(image, "tags")) end
local tally = succeeded .. " of " .. desired .. " images are pulled, " .. failed .. " failed"
if succeeded + failed < desired then return progressing(tally) end
return failed > 0 and degraded(tally) or healthy(tally)
