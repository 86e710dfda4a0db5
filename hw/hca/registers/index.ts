/** What other rooms use of this one: see README.md. */
export { CommandRegister } from './command-register.ts';
export { ControlRegisters } from './registers.ts';
