export type { HeaderFields } from './fields.ts';
export {
  destinationGid,
  errorsOf,
  headerOf,
  type IndependentPacket,
  isRight,
  type PacketForm,
  readCaptured,
  readFrame,
  readLinkPacket,
  sourceGid,
} from './packet.ts';
