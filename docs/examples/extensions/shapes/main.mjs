export default {
  async area({ width, height }, context) {
    context.log(`${width} by ${height}`);
    return { area: width * height };
  },
};
