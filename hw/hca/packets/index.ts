/** Interface of this room: see README.md. */
export { PACKET_PAYLOAD_BYTES_MAX, PacketQueue, PacketSlot, VOID_GENERATION } from './packet-queue.ts';
export { ReadUnit } from './read-unit.ts';
export {
  receiverStalls,
  STALL_COMPLETION,
  STALL_CONTEXT,
  STALL_DMA,
  STALL_KEYS,
  STALL_RECEIVE_WQE,
  STALL_TRANSLATION,
} from './receive-pipeline.ts';
