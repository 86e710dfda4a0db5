/** Interface of this room: see README.md. */
export { ManagementPort, type SwitchManagement } from './management-port.ts';
