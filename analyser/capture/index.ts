export { LinkType } from './capture-layouts.ts';
export { readCapture } from './capture-reader.ts';
export { CaptureReading } from './capture-reading.ts';
export { erfRecord, type WrittenPacket, writeCapture } from './capture-writer.ts';
export { packetsIn } from './captured-packets.ts';
export { readFrame } from './frame-reader.ts';
export type { Conversation, Utterance } from './talk.ts';
