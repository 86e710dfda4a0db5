export { LinkType } from './capture-layouts.ts';
export { CaptureError, readCapture } from './capture-reader.ts';
export { writeCapture } from './capture-writer.ts';
