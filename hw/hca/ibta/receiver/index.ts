/** Interface of this room: see README.md. */
export { DatagramReceiver } from './datagram-receiver.ts';
export { MulticastGroups } from './multicast-groups.ts';
export { type EmbeddedManager, Receiver, type SpecialQps } from './receiver.ts';
