/** What other rooms use of this one: see README.md. */
export { PayloadWriter } from './payload-writer.ts';
export {
  LIST_ABSENT,
  LIST_FULL,
  LIST_REFUSED,
  NONE_POSTED,
  QUEUE_UNREADABLE,
  ReceiveScatter,
  TAKEN,
} from './receive-scatter.ts';
export { ReceiveWqeFetch } from './receive-wqe-fetch.ts';
