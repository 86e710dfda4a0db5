export {
  changesOf,
  configHashOf,
  configurationOf,
  type ParameterValues,
  profileValues,
} from './configuration.ts';
export { type ProfileListing, profileListing } from './listing.ts';
export { type MachineConfig, type ParameterValue, parametersByPath } from './parameter-tree.ts';
export { defaultProfileName } from './profiles.ts';
export { checkedValue, hintFor, parsedAssignment } from './values.ts';
