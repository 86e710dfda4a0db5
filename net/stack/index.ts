export { type NetAddresses, NetworkStack } from './stack.ts';
