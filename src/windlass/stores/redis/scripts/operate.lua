-- ARGV: id, action (c cancel, r retry, x delete), what history tells of the operator and the statuses it is meant for
-- ('' all), for each order. Answers verdict, the status found and the holder of its key, for each.
local function cancel(id, job, rest)
  if WAITS[job[STATUS]] then
    local from = job[STATUS]
    leave(id, job, 'c')
    job[FINISHED_AT], job[UPDATED_AT], job[CANCEL_AT], job[BLOCKED_BY] = NOW, NOW, NOW, ''
    enter(id, job, 'c', from)
    tell(id, job, 'c', '', rest)
    flush()
    if job[KEY] ~= '' then
      let_go(id, job)
      touch(id, job)
      flush()
    end
    return 'done'
  end
  if job[STATUS] ~= 'p' then
    return 'refused'
  end
  if job[CANCEL_AT] == '' then
    job[CANCEL_AT] = NOW
    add_all(P .. 'cancels', 0, {id})
  end
  job[UPDATED_AT] = NOW
  tell(id, job, 'a', '', rest)
  flush()
  return 'requested'
end

local function restart(id, job)
  job[ATTEMPTS], job[CRASHES] = '0', '0'
  remove_all(P .. 'charged', {id})
  for _, field in ipairs({RESULT, ERROR, PROGRESS, FINISHED_AT, STARTED_AT, DURATION, WAIT, WORKER, CANCEL_AT}) do
    job[field] = ''
  end
end

local function retry(id, job, rest)
  local status = job[STATUS]
  local hurried = status == 's' or status == 'r' or status == 'b' and is_by(BY.payload, job[BLOCKED_BY])
  if not hurried and not ENDED[status] then
    return 'refused'
  end
  if not hurried and job[KEY_QUEUED] ~= '' then
    local holder = redis.call('HGET', P .. 'keys', job[KEY_QUEUED])
    if holder and holder ~= id then
      return 'duplicate', holder
    end
  end
  leave(id, job, 'q')
  if not hurried then
    restart(id, job)
  end
  job[RUN_AT], job[QUEUED_AT], job[UPDATED_AT], job[BLOCKED_BY] = NOW, NOW, NOW, ''
  enter(id, job, 'q', status)
  tell(id, job, 't', '', rest)
  flush()
  if not hurried and job[KEY_QUEUED] ~= '' then
    hold(id, job, job[KEY_QUEUED])
    touch(id, job)
    flush()
  end
  return 'done'
end

local function delete(id, job)
  if job[STATUS] == 'p' then
    return 'refused'
  end
  local idempotent = whole(job)[IDEMPOTENT]
  local key = idempotent ~= '' and P .. 'i:' .. idempotent
  if key and redis.call('GET', key) == id then
    redis.call('DEL', key)
  end
  erase(id, job)
  flush()
  return 'done'
end

local done_before = answered()
if done_before then
  return done_before
end

local ACTIONS = {c = cancel, r = retry, x = delete}
local answers, asked = {}, false
for at = 1, #ARGV, 4 do
  local id, job = ARGV[at], job_of(ARGV[at])
  if not job then
    answers[#answers + 1] = {'missing'}
  elseif ARGV[at + 3] ~= '' and not ARGV[at + 3]:find(job[STATUS], 1, true) then
    answers[#answers + 1] = {'refused', job[STATUS]}
  else
    local found = job[STATUS]
    local verdict, holder = ACTIONS[ARGV[at + 1]](id, job, ARGV[at + 2])
    answers[#answers + 1] = {verdict, found, holder}
    -- Of jobs that are gone no list tells; nor of those that were only asked to stop.
    news.cancel = news.cancel or verdict == 'requested'
    asked = asked or verdict == 'requested' or (verdict == 'done' and ARGV[at + 1] == 'x')
    if verdict == 'done' then
      -- The one that went may have been next in line: those behind it must not wait for its end.
      local waited = {}
      local how = ARGV[at + 1] == 'c' and 'cancelled' or ARGV[at + 1] == 'x' and not ENDED[found] and 'deleted'
      waited_for(id, job, waited, how and 'job ' .. id .. ', which it awaited, was ' .. how)
      unblock_behind(waited)
    end
  end
end
wake(asked)
return remember(answers)
