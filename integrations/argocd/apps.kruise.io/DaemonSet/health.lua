-- Healthy: each node has an updated and available pod. Suspended: paused, updated up to the partition, or a selector
-- excludes nodes from the update.

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

local function observed()
  return type(at(obj, "status")) == "table" and count("observedGeneration") >= number(at(obj, "metadata", "generation"))
end

-- Convert a number of pods or a percentage to pods, at most the total. Rounded up, less than 100% is less than the total.
local function share(value, total, up)
  if type(value) == "number" then return value < total and value or total end
  for percent = 1, 999 do
    if value == percent .. "%" then
      if percent >= 100 then return total end
      local exact = total * percent / 100
      local whole = exact - exact % 1
      return up and whole < exact and (whole + 1 < total or total == 1) and whole + 1 or whole
    end
  end
  return 0
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
local rolling = at(strategy, "rollingUpdate")
local manual = at(strategy, "type") == "OnDelete"
local total, there = count("desiredNumberScheduled"), most("currentNumberScheduled", "numberReady")
local rest = total - (manual and 0 or share(at(rolling, "partition"), total))
local wanted = total
local progressive = at(obj, "spec", "scaleStrategy", "partitionedScaling") == true
  or at(obj, "metadata", "annotations", "daemonset.kruise.io/progressive-create-pod") == "true" -- v1alpha1
if progressive then wanted = there < rest and rest or there end -- the nodes of the partition have no pods at first
local selected = next(entries(at(rolling, "selector"))) ~= nil -- the status does not say how many nodes
return rollout({
  wanted = wanted,
  total = total,
  there = there,
  expected = (manual or selected) and 0 or rest,
  updated = count("updatedNumberScheduled"),
  unavailable = wanted - count("numberAvailable"), -- absent when it is 0
  paused = not manual and at(rolling, "paused") == true,
  manual = manual,
  limit = selected and "selector" or "partition",
})
