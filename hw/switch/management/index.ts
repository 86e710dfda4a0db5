/** Interface of this room: see README.md. */
export type { PortDrops } from './managed-port.ts';
export { ManagementPort, type SwitchManagement } from './management-port.ts';
