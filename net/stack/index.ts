export type { ConnectionError, ConnectionState } from './connection.ts';
export type { NetDevice, NetworkLayer } from './environment.ts';
export { addressText } from './headers.ts';
export { PacketBuffer, PacketBuffers } from './packet-buffer.ts';
export { type NetAddresses, NetworkStack } from './stack.ts';
