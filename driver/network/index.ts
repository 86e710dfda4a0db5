export { ProtocolTimers } from '../protocol-timers.ts';
export { arpRequest } from './arp.ts';
export { receiveArp } from './arp-reception.ts';
export { NeighbourTable } from './neighbour-table.ts';
export { type NetworkCounts, NetworkInterface } from './network-interface.ts';
