-- Shared by apply.lua and rescue.lua: transitions are written where their token still is the job's.
local TRANSITION = 10

local function transition_at(at)
  return {
    id = ARGV[at], token = ARGV[at + 1], to = ARGV[at + 2], what = ARGV[at + 3], delay = ARGV[at + 4],
    give_back = tonumber(ARGV[at + 5]), crashed = tonumber(ARGV[at + 6]), result = ARGV[at + 7], error = ARGV[at + 8],
    rest = ARGV[at + 9],
  }
end

local function bucket_of(ms)
  local bits, size = 0, 1
  while ms >= size and bits < 32 do
    bits, size = bits + 1, size * 2
  end
  return bits
end

local minute = now - now % 60000
local ended_now = false

local function count_end(job)
  local ms = math.max(job[DURATION], 0)
  local named = job[STATUS] .. SEP .. bucket_of(ms) .. SEP .. job[QUEUE] .. SEP .. job[TYPE]
  local key = P .. 'minute:' .. minute
  tally(key, 'n' .. named, 1)
  tally(key, 'd' .. named, ms)
  tally(key, 'w' .. named, tonumber(job[WAIT] ~= '' and job[WAIT] or 0))
  ended_now = true
end

local freed = {}

-- The job is processing under the transition's token. A forced release moves the token on.
local function settle(one, job, forced)
  local id, to, what, rest = one.id, one.to, one.what, one.rest
  if job[CANCEL_AT] ~= '' and not ENDED[to] then
    to, what, rest = 'c', 'c', noted('cancelled on request')
  end
  leave(id, job)
  local token = job[TOKEN]
  job[UPDATED_AT], job[DURATION], job[EXPIRES_AT] = now, now - job[STARTED_AT], ''
  job[ATTEMPTS], job[CRASHES] = job[ATTEMPTS] - one.give_back, job[CRASHES] + one.crashed
  job[TOKEN] = token + (forced and 1 or 0)
  if ENDED[to] then
    job[RESULT], job[ERROR], job[FINISHED_AT] = one.result, one.error, now
    freed[#freed + 1] = id
  else
    if one.delay ~= '' then job[RUN_AT] = now + tonumber(one.delay) end
    if one.error ~= '' then job[ERROR] = one.error end
    job[QUEUED_AT] = to == 'q' and now or ''
    job[WORKER] = ''
  end
  enter(id, job, to)
  mark_live(id, job)
  tell(id, job, what, token, rest)
  count_end(job)
  return to
end

local waited = {}

local function finish_settling()
  go_on_when_full()
  flush()
  for _, id in ipairs(freed) do
    if jobs[id][KEY] ~= '' then
      let_go(id, jobs[id])
      changed[id] = jobs[id]
    end
  end
  flush()
  if ended_now then
    redis.call('ZADD', P .. 'minutes', minute, minute)
    redis.call('PEXPIREAT', P .. 'minute:' .. minute, minute + 30 * 86400000)
    unblock_behind(waited)
    wake()
  end
end
