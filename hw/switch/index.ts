/** Switches of a fabric. */
export { ethernetSwitchParameters } from './ethernet-parameters.ts';
export { checkEthernetSwitch, EthernetSwitch, type EthernetSwitchCable } from './ethernet-switch.ts';
export { NO_PORT } from './forwarding-tables.ts';
export { InfinibandSwitch, type SwitchCable } from './infiniband-switch.ts';
export { switchParameters } from './parameters.ts';
