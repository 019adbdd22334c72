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
