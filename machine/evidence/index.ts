/** Interface of this room: evidence of why requests fail, from devices and from simulated hosts. */
export { DeviceJournal } from './device-journal.ts';
export * from './evidence.ts';
export { HostJournal, type PlaceOf } from './host-journal.ts';
