-- Healthy: each node has an updated and available pod. Suspended: paused, updated up to the partition, or a selector
-- excludes nodes from the update.
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
