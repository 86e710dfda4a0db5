export { type NetworkCounts, NetworkInterface } from './network-interface.ts';
