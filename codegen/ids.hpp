// Numbers that say what they number: one kind of them cannot index, and is not compared with, what another one numbers.
#pragma once

#include <compare>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace tessera::codegen {

/// The number of a row of a Table, or of none.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;  ///< of none
  explicit constexpr Id(int number) : number_(number) {}
  constexpr bool valid() const { return number_ >= 0; }
  constexpr int number() const { return number_; }
  auto operator<=>(const Id&) const = default;

 private:
  int number_ = -1;
};

/// A vector whose rows are found by their ids.
template <class T, class I>
class Table : std::vector<T> {
  using Rows = std::vector<T>;

 public:
  using Rows::assign, Rows::back, Rows::begin, Rows::clear, Rows::data, Rows::emplace_back, Rows::empty, Rows::end,
      Rows::erase, Rows::front, Rows::insert, Rows::pop_back, Rows::push_back, Rows::reserve, Rows::resize, Rows::size;
  using Rows::Rows;
  using typename Rows::const_iterator, typename Rows::const_reference, typename Rows::iterator,
      typename Rows::reference, typename Rows::size_type, typename Rows::value_type;

  decltype(auto) operator[](I id) { return Rows::operator[](static_cast<std::size_t>(id.number())); }
  decltype(auto) operator[](I id) const { return Rows::operator[](static_cast<std::size_t>(id.number())); }

  bool has(I id) const { return id.valid() && id < next(); }

  /// What the next row that is added is found by.
  I next() const { return I(static_cast<int>(size())); }
  /// Puts a row behind the others.
  I add(T row) {
    const I id = next();
    push_back(std::move(row));
    return id;
  }

  /// The ids of all rows, also of those that are added meanwhile.
  class Ids {
   public:
    class Iterator {
     public:
      using difference_type = std::ptrdiff_t;
      using value_type = I;
      explicit Iterator(int number = 0) : number_(number) {}
      I operator*() const { return I(number_); }
      Iterator& operator++() {
        ++number_;
        return *this;
      }
      Iterator operator++(int) { return Iterator(number_++); }
      bool operator==(const Iterator&) const = default;
      bool operator==(const Ids& all) const { return number_ >= static_cast<int>(all.table_->size()); }

     private:
      int number_;
    };
    explicit Ids(const Table& table) : table_(&table) {}
    Iterator begin() const { return Iterator(0); }
    Ids end() const { return *this; }

   private:
    const Table* table_;
  };
  Ids ids() const { return Ids(*this); }
};

}  // namespace tessera::codegen
