/** Switches of a fabric. */
export { InfinibandSwitch, type SwitchCable } from './infiniband-switch.ts';
export { switchParameters } from './parameters.ts';
