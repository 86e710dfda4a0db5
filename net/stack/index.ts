export { isWindowWorthAnnouncing, limitFinWait, output, sequenceAdd } from '../../protocol/tcp/index.ts';
export { type IpAddress, ipv6Of, linkLocalOf, textOfIp } from './address.ts';
export type { Connection } from './connection.ts';
export {
  type DeviceFilters,
  type NetDevice,
  type NetworkLayer,
  noTag,
  type OutboundFrame,
} from './environment.ts';
export type { InterfaceSetup, NetInterface, Route } from './interface.ts';
export { bufferBytesFor } from './ip-version.ts';
export type { Listener, LocalEnd } from './listener.ts';
export { type PacketBuffer, PacketBuffers } from './packet-buffer.ts';
export { closeConnection, finish, type NetAddresses, NetworkStack, receiveSumStart } from './stack.ts';
export { WaitQueue } from './wait-queue.ts';
