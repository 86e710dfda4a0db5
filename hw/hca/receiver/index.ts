/** Interface of this room: see README.md. */
export { DatagramReceiver } from './datagram-receiver.ts';
export { MulticastGroups } from './multicast-groups.ts';
export { Receiver, type SpecialQps } from './receiver.ts';
