-- Healthy: the sidecars of all matched pods are updated and ready. Suspended: paused, or a partition or a selector
-- excludes pods from the update.
if not observed() then return waiting() end
if at(obj, "spec", "injectionStrategy", "paused") == true then return suspended("Injection is paused") end
local strategy = at(obj, "spec", "updateStrategy")
local manual = at(strategy, "type") == "NotUpdate"
local matched, updated = count("matchedPods"), count("updatedPods")
local selected = next(entries(at(strategy, "selector"))) ~= nil -- the status does not say how many pods
return rollout({
  wanted = matched,
  there = matched,
  expected = (manual or selected) and 0 or matched - share(at(strategy, "partition"), matched, true),
  updated = updated,
  unavailable = updated - count("updatedReadyPods"), -- absent when it is 0
  paused = not manual and at(strategy, "paused") == true,
  manual = manual,
  limit = selected and "selector" or "partition",
})
