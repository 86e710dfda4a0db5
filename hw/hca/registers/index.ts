/** Interface of this room: see README.md. */
export { CommandRegister } from './command-register.ts';
export { type ControlRegisterPorts, ControlRegisters } from './registers.ts';
