-- Healthy: all pods are updated and available. Suspended: paused, or updated up to the partition.

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

-- Return the greatest of some counts: pods in one of them exist, even if others lag behind.
local function most(...)
  local greatest = 0
  for _, name in ipairs({...}) do
    if count(name) > greatest then greatest = count(name) end
  end
  return greatest
end

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

local function observed()
  return type(at(obj, "status")) == "table" and count("observedGeneration") >= number(at(obj, "metadata", "generation"))
end

local function replicas()
  local value = at(obj, "spec", "replicas")
  if type(value) == "number" then return value end
  return 1
end

local function healthy(message) return {status = "Healthy", message = message} end
local function progressing(message) return {status = "Progressing", message = message} end
local function suspended(message) return {status = "Suspended", message = message} end
local function degraded(message) return {status = "Degraded", message = message} end
local function waiting() return progressing("Waiting for the latest spec to be observed") end

-- `r`: the numbers of pods: desired now (wanted) and in the end (total), existing (there), to be updated now (expected),
-- updated, unavailable. `manual`: others are updated when users delete them. `limit`: what limits the update.
local function rollout(r)
  local total = r.total or r.wanted
  local updated = r.updated .. " of " .. total .. " pods are updated"
  if r.paused then return suspended("Rollout is paused: " .. updated) end
  local missing
  if r.there < r.wanted then
    missing = r.there .. " of " .. r.wanted .. " pods have been created"
  elseif r.there > r.wanted then
    missing = (r.there - r.wanted) .. " pods are pending termination"
  elseif r.updated < r.expected then
    missing = r.updated .. " out of " .. r.expected .. " new pods have been updated"
  elseif r.unavailable > 0 then
    missing = r.unavailable .. " of " .. r.wanted .. " pods are not available"
  end
  if missing and r.failure then return degraded(r.failure .. " (" .. missing .. ")") end
  if missing then return progressing("Waiting for rollout to finish: " .. missing) end
  if r.updated >= total then return healthy("All " .. total .. " pods are updated and available") end
  if r.manual then return healthy(updated .. ", the others will be when they are deleted") end
  return suspended("Rollout has reached its " .. (r.limit or "partition") .. ": " .. updated)
end

if at(obj, "metadata", "deletionTimestamp") then return progressing("Pending deletion") end

if not observed() then return waiting() end
local strategy = at(obj, "spec", "updateStrategy")
local rolling = at(strategy, "rollingUpdate") or strategy -- v1alpha1 has no rollingUpdate
local manual = at(strategy, "type") == "OnDelete"
local partition = at(rolling, "partition") or 0
local wanted, expected = replicas(), replicas()
if manual then
  expected = 0
elseif partition ~= 0 and partition ~= "0%" then
  expected = count("expectedUpdatedReplicas") -- absent when it is 0
end
return rollout({
  wanted = wanted,
  there = count("replicas"),
  expected = expected,
  updated = most("updatedReplicas", "updatedReadyReplicas"),
  unavailable = wanted - most("availableReplicas", "updatedAvailableReplicas"),
  paused = not manual and at(rolling, "paused") == true,
  manual = manual,
  failure = condition("Progressing", "False", "ProgressDeadlineExceeded")
    or condition("FailedScale", "True")
    or condition("FailedUpdate", "True"),
})
