/** Switches of a fabric. */
export { ethernetSwitchParameters } from './ethernet-parameters.ts';
export { checkEthernetSwitch, EthernetSwitch, type EthernetSwitchCable } from './ethernet-switch.ts';
export { NO_PORT } from './forwarding-tables.ts';
export { type InfinibandPacket, InfinibandSwitch, type SwitchCable } from './infiniband-switch.ts';
export type { SwitchManagement } from './management/index.ts';
export { switchCongestionParameters, switchParameters } from './parameters.ts';
export type { StoredFrame } from './stored-frames.ts';
export {
  type Departure,
  type SwitchDrop,
  type SwitchTap,
  type SwitchWait,
  switchDrops,
  switchWaits,
} from './switch-tap.ts';
