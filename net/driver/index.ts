export { NicDriver } from './nic-driver.ts';
