/** Sizes of the library's queues and requests, in bytes and rows: for models that count them, not part of verbs. */
export { sendSizesOf } from '../send-ring.ts';
export { sendRowsOf } from '../send-rows.ts';
export { wqeBytesOf } from '../wqe-writer.ts';
