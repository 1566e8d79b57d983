-- ARGV: id, action (c cancel, r retry, x delete, g signal), what history tells of the operator, the statuses it is meant for
-- ('' all), = and the user whose job is meant ('' anybody's), name and value of a signal, for each order. Answers verdict, the
-- status found and the holder of its key, for each.
local function cancel(id, job, rest)
  if WAITS[job[STATUS]] then
    cancel_waiting(id, job, rest)
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
  if expiry_of(job) ~= '' then
    job[MORE] = with_part(job[MORE], EXPIRY, '')
  end
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

-- As core.kept.receive says. The value is written first: if memory is full, that is refused and nothing has changed.
local function signal(id, job, rest, name, text)
  local by = BY.signal .. name
  if ENDED[job[STATUS]] then
    return 'refused'
  elseif has_kept(id, job, by) then
    return 'duplicate'
  elseif not has_room(id, job, by, text) then
    return 'full'
  end
  keep_value(id, job, by, text)
  local waits = job[STATUS] == 'b' and job[BLOCKED_BY] == by
  if waits then
    leave(id, job, 'q')
    job[RUN_AT], job[QUEUED_AT], job[BLOCKED_BY] = NOW, NOW, ''
    enter(id, job, 'q', 'b')
  end
  tell(id, job, 'i', '', rest)
  flush()
  return waits and 'done' or 'kept'
end

local done_before = answered()
if done_before then
  return done_before
end

local ACTIONS = {c = cancel, r = retry, x = delete, g = signal}
local answers, asked = {}, false
for at = 1, #ARGV, 7 do
  local id, job = ARGV[at], job_of(ARGV[at])
  if not job or ARGV[at + 4] ~= '' and ARGV[at + 4] ~= '=' .. whole(job)[USER] then
    answers[#answers + 1] = {'missing'}
  elseif ARGV[at + 3] ~= '' and not ARGV[at + 3]:find(job[STATUS], 1, true) then
    answers[#answers + 1] = {'refused', job[STATUS]}
  else
    local found = job[STATUS]
    local verdict, holder = ACTIONS[ARGV[at + 1]](id, job, ARGV[at + 2], ARGV[at + 5], ARGV[at + 6])
    answers[#answers + 1] = {verdict, found, holder}
    -- Of jobs that are gone no list tells; nor of those that were only asked to stop, or keep a signal for later.
    news.cancel = news.cancel or verdict == 'requested'
    asked = asked or verdict == 'requested' or verdict == 'kept' or (verdict == 'done' and ARGV[at + 1] == 'x')
    if verdict == 'done' and ARGV[at + 1] ~= 'g' then
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
