-- Healthy: all containers have succeeded. Degraded: one, or the job, has failed.

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

-- Return the message of a status condition with this value; nil without one.
local function condition(kind, value, reason)
  for _, one in ipairs(entries(at(obj, "status", "conditions"))) do
    local why = at(one, "reason")
    if at(one, "type") == kind and at(one, "status") == value and (reason == nil or reason == why) then
      return text(at(one, "message"), text(why, kind))
    end
  end
end

local function healthy(message) return {status = "Healthy", message = message} end
local function progressing(message) return {status = "Progressing", message = message} end
local function suspended(message) return {status = "Suspended", message = message} end
local function degraded(message) return {status = "Degraded", message = message} end
local function waiting() return progressing("Waiting for the latest spec to be observed") end

if at(obj, "metadata", "deletionTimestamp") then return progressing("Pending deletion") end

local phase, matched, succeeded, failed = at(obj, "status", "phase"), count("match"), count("succeeded"), count("failed")
local tally = succeeded .. " of " .. matched .. " pods succeeded, " .. failed .. " failed"
local failure = condition("JobError", "True") or condition("JobFailed", "True")
if failure or failed > 0 or phase == "Failed" or phase == "Error" then
  return degraded((failure or "Job failed") .. " (" .. tally .. ")")
end
if phase == "Succeeded" or condition("JobSucceeded", "True") then return healthy("Job completed: " .. tally) end
if phase == "Paused" or at(obj, "spec", "paused") == true then return suspended("Job is paused: " .. tally) end
if type(phase) ~= "string" or phase == "" then return waiting() end
if matched == 0 then return progressing("Job matches no pods") end
return progressing("Job is running: " .. tally)
