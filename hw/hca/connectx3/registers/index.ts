/** Interface of this room: see README.md. */
export { CommandRegister } from './command-register.ts';
export { ControlRegisters } from './control-registers.ts';
