/** Interface of this room: see README.md. */
export { PayloadWriter, type ReceiveBuffers } from './payload-writer.ts';
export { ReceiveScatter } from './receive-scatter.ts';
export { ReceiveWqeFetch } from './receive-wqe-fetch.ts';
