/** Interface of this room: see README.md. */
export { PayloadWriter } from './payload-writer.ts';
export { ReceiveScatter } from './receive-scatter.ts';
export { ReceiveWqeFetch } from './receive-wqe-fetch.ts';
