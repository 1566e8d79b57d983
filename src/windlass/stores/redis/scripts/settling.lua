-- Shared by apply.lua and rescue.lua: transitions are written where their token still is the job's.
--
-- ARGV holds pairs: what transitions have in common, as fields (status, event, delay, whether the attempt is given back,
-- whether it crashed, error, note), and then id, token and result of each of them, every one ended by a NUL.
local function each_transition(act)
  for at = 1, #ARGV, 2 do
    local common = split(ARGV[at])
    local one = {
      to = common[1], what = common[2], delay = common[3], give_back = tonumber(common[4]),
      crashed = tonumber(common[5]), error = common[6], rest = common[7],
    }
    for id, token, result in string.gmatch(ARGV[at + 1], '(%Z*)%z(%Z*)%z(%Z*)%z') do
      one.id, one.token, one.result = id, token, result
      act(one)
    end
  end
end

local function bucket_of(ms)
  local bits, size = 0, 1
  while ms >= size and bits < 32 do
    bits, size = bits + 1, size * 2
  end
  return bits
end

local minute = now - now % 60000
local ends, ended_now = {}, false

local function count_end(job)
  local ms = math.max(tonumber(job[DURATION]), 0)
  local bucket, of = bucket_of(ms), names_of(job)
  local one = of.ends[bucket]
  if not one then
    one = {name = SEP .. bucket .. SEP .. of.name, n = 0, ran = 0, waited = 0}
    of.ends[bucket] = one
    ends[#ends + 1] = one
  end
  one.n, one.ran = one.n + 1, one.ran + ms
  one.waited = one.waited + (job[WAIT] ~= '' and tonumber(job[WAIT]) or 0)
  ended_now = true
end

local function write_ends()
  local key = P .. 'minute:' .. minute
  for _, one in ipairs(ends) do
    redis.call('HINCRBY', key, 'n' .. one.name, one.n)
    redis.call('HINCRBY', key, 'd' .. one.name, one.ran)
    redis.call('HINCRBY', key, 'w' .. one.name, one.waited)
  end
  redis.call('PEXPIREAT', key, minute + 30 * 86400000)
  redis.call('ZADD', P .. 'minutes', minute, minute)
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
  job[UPDATED_AT], job[DURATION], job[EXPIRES_AT] = NOW, digits[now - job[STARTED_AT]], ''
  job[ATTEMPTS], job[CRASHES] = digits[job[ATTEMPTS] - one.give_back], digits[job[CRASHES] + one.crashed]
  job[TOKEN] = digits[token + (forced and 1 or 0)]
  if ENDED[to] then
    job[RESULT], job[ERROR], job[FINISHED_AT] = one.result, one.error, NOW
    freed[#freed + 1] = id
  else
    if one.delay ~= '' then job[RUN_AT] = digits[now + tonumber(one.delay)] end
    if one.error ~= '' then job[ERROR] = one.error end
    job[QUEUED_AT] = to == 'q' and NOW or ''
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
    write_ends()
    unblock_behind(waited)
    wake()
  end
end
