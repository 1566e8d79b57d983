-- Shared by apply.lua and rescue.lua: transitions are written where their token still is the job's.
--
-- ARGV holds pairs: what transitions have in common, as fields (token, status, event, delay, whether the attempt is given
-- back, whether it crashed, error, note, what blocks it, the note if the signal that it would wait for is there), and then id
-- and result of each of them, every one ended by a NUL.
local function read_transitions()
  local found = {}
  for at = 1, #ARGV, 2 do
    local common, ids, results, n = split(ARGV[at]), {}, {}, 0
    for id, result in string.gmatch(ARGV[at + 1], '(%Z*)%z(%Z*)%z') do
      n = n + 1
      ids[n], results[n] = id, result
    end
    load(ids)
    found[#found + 1] = {
      token = common[1], to = common[2], what = common[3], delay = common[4], give_back = tonumber(common[5]),
      crashed = tonumber(common[6]), error = common[7], rest = common[8], blocked_by = common[9], goes_on = common[10],
      gathers = string.find(common[9], BY.flow, 1, true) == 1, ids = ids,
      results = results, turned = {},
    }
  end
  return found
end

-- Mirrors core.spread.bucket_of.
local GROWTH = math.log(1.2)

local function bucket_of(ms)
  return ms > 0 and math.min(1 + math.ceil(math.log(ms) / GROWTH), 160) or 0
end

local minute = now - now % 60000
local MINUTE = P .. 'minute:' .. minute

-- Status, queue and type; how many ended so, how long they ran and waited: sums, how many in each bucket, least and most.
local ends = {}

local function add_to(sums, what, ms, n)
  local bucket = what .. bucket_of(ms)
  sums.add[bucket] = (sums.add[bucket] or 0) + n
  sums.least[what] = math.min(sums.least[what] or ms, ms)
  sums.most[what] = math.max(sums.most[what] or ms, ms)
end

local function count_ends(herd)
  local name = names_of(herd.after).name
  local sums = ends[name] or {add = {n = 0, d = 0, w = 0}, least = {}, most = {}}
  local ms, add = math.max(tonumber(herd.after[DURATION]), 0), sums.add
  ends[name] = sums
  add_to(sums, 'r', ms, herd.n)
  for _, id in ipairs(herd.ids) do
    local wait = tonumber(jobs[id][WAIT]) or 0
    add_to(sums, 'w', math.max(wait, 0), 1)
    add.w = add.w + wait
  end
  add.n, add.d = add.n + herd.n, add.d + herd.n * ms
end

local function write_ends()
  for name, sums in pairs(ends) do
    local of = SEP .. '-1' .. SEP .. name
    for what, n in pairs(sums.add) do
      redis.call('HINCRBY', MINUTE, what .. of, n)
    end
    local before = redis.call('HMGET', MINUTE, 'rl' .. of, 'rm' .. of, 'wl' .. of, 'wm' .. of)
    local least, most = sums.least, sums.most
    redis.call('HSET', MINUTE,
      'rl' .. of, math.min(tonumber(before[1]) or least.r, least.r),
      'rm' .. of, math.max(tonumber(before[2]) or most.r, most.r),
      'wl' .. of, math.min(tonumber(before[3]) or least.w, least.w),
      'wm' .. of, math.max(tonumber(before[4]) or most.w, most.w))
  end
  redis.call('PEXPIREAT', MINUTE, minute + 30 * 86400000)
  redis.call('ZADD', P .. 'minutes', minute, minute)
end

-- What becomes of a job: it must not run another time if it was asked to cancel.
local function ending(alike, job)
  if job[CANCEL_AT] ~= '' and not ENDED[alike.to] then
    return 'c', 'c', noted('cancelled on request')
  end
  return alike.to, alike.what, alike.rest
end

-- What the end of an attempt changes alike in jobs that look alike. A forced release moves the token on.
local function ended(alike, forced)
  return function(job)
    local token, to, what, rest = job[TOKEN], ending(alike, job)
    job[DURATION], job[EXPIRES_AT] = digits[now - job[STARTED_AT]], ''
    job[ATTEMPTS], job[CRASHES] = digits[job[ATTEMPTS] - alike.give_back], digits[job[CRASHES] + alike.crashed]
    job[TOKEN] = digits[token + (forced and 1 or 0)]
    if ENDED[to] then
      job[ERROR], job[FINISHED_AT] = alike.error, NOW
    else
      job[WORKER] = ''
      job[BLOCKED_BY] = to == 'b' and alike.blocked_by or ''
      if to == 'b' and alike.gathers then
        job[CONTROL] = with_part(job[CONTROL], AWAITS, 'end')
      end
      if alike.error ~= '' then job[ERROR] = alike.error end
    end
    return to, entry_of(what, to, token, rest)
  end
end

local function was_cancelled(id)
  return 'job ' .. id .. ', which it awaited, was cancelled'
end

local waited = {}

-- The job is processing under the transition's token.
local function settle(alike, id, job, result, forced)
  alike.change = alike.change or ended(alike, forced)
  local to = turn(id, job, alike.turned, alike.change)
  job[UPDATED_AT] = NOW
  if forced and alike.crashed == 1 then
    add_all(P .. 'charged', alike.token, {id})
  end
  if to == 'b' and alike.gathers then
    waited[alike.blocked_by] = false -- its children may all have ended by now
  end
  waited_for(id, job, waited, (to == 'f' and 'job ' .. id .. ' failed') or (to == 'c' and was_cancelled(id)))
  if ENDED[to] then
    job[RESULT] = result
  else
    if alike.delay ~= '' then job[RUN_AT] = digits[now + tonumber(alike.delay)] end
    if to ~= 'b' then job[QUEUED_AT] = to == 'q' and NOW or '' end
  end
  return to
end

-- The keys of jobs that have ended are free.
local function free_keys(herd)
  for _, id in ipairs(ENDED[herd.to] and herd.ids or {}) do
    if jobs[id][KEY] ~= '' then
      let_go(id, jobs[id])
      touch(id, jobs[id])
    end
  end
end

-- Writes what `settle` has gathered of all transitions, and lets those go on that waited for these ends.
local function finish_settling(transitions)
  local herds = {}
  for _, alike in ipairs(transitions) do
    move_all(alike.turned)
    for _, herd in pairs(alike.turned) do
      herds[#herds + 1] = herd
      count_ends(herd)
    end
  end
  go_on_when_full()
  flush()
  for _, herd in ipairs(herds) do
    free_keys(herd)
  end
  flush()
  if #herds > 0 then
    write_ends()
    unblock_behind(waited)
    wake()
  end
end
