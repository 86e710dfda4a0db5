/** Interface of this room: see README.md. */
export {
  CHANGES_KEYS,
  EXECUTABLE_BY_RC,
  EXECUTABLE_BY_UC,
  EXECUTABLE_BY_XRC,
  HAS_REMOTE_ADDRESS,
  IS_ATOMIC,
  isKeyOperation,
  isReadOrAtomic,
  operationTraits,
  takesCredit,
} from './operation-traits.ts';
export {
  NOT_PARKED,
  PARKED_CONTEXT,
  PARKED_CREDITS,
  PARKED_DRAINING,
  PARKED_ERROR,
  PARKED_FENCE,
  PARKED_KEYS,
  PARKED_ORDER,
  PARKED_PAGE_FAULT,
  PARKED_READ_LIMIT,
  PARKED_RECORDS,
  PARKED_RETRY_DELAY,
  PARKED_TRANSPORT_WINDOW,
  PARKED_WINDOW,
  SendScheduler,
} from './send-scheduler.ts';
export { WorkArrivals } from './work-arrivals.ts';
export { WqeFetch } from './wqe-fetch.ts';
export { WqeLines } from './wqe-lines.ts';
