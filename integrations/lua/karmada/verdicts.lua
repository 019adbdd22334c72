local function healthy() return true end
local function progressing() return true end
local function suspended() return true end
local function degraded() return false end
local function waiting() return false end

-- `r`: the numbers of pods: desired (wanted), existing (there), to be updated now (expected), updated, unavailable.
local function rollout(r)
  return r.there >= r.wanted and r.unavailable <= 0 and (r.paused or r.updated >= r.expected)
end
